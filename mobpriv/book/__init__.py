"""The book: what notebooks call, and behind it what runs, judges and renders them.

A notebook calls ``save`` (hand the numbers over), ``step`` (keep what is finished of a long run), ``compared`` (its results
beside the published ones and the papers', for figures and tables), ``table`` (a DataFrame in the book's form), ``called`` (what the pages
call a part of a name) and ``published`` (the results of another notebook).
"""

from mobpriv.book.comparison import called, compared
from mobpriv.book.results import published, save, step
from mobpriv.book.tables import table

__all__ = ["called", "compared", "published", "save", "step", "table"]
