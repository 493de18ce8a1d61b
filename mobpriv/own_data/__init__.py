"""Answers about a table of one's own: protect it, judge what somebody else has protected."""
