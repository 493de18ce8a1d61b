"""The book: functions for notebooks, and the code that runs, tests and renders them.

Functions for notebooks:

- ``save``: pass on the results;
- ``step``: keep the finished steps of a long run;
- ``compared``: the results with the published ones and the papers' numbers, for figures and tables;
- ``table``: show a DataFrame in the style of the book;
- ``check``: say whether a reader's number is the answer to an exercise;
- ``called``: the label of a part of a name;
- ``published``: the results of any notebook on real data, as a table.
"""

from mobpriv.book.comparison import called, compared, published
from mobpriv.book.results import save, step
from mobpriv.book.self_checks import check
from mobpriv.book.tables import table

__all__ = ["called", "check", "compared", "published", "save", "step", "table"]
