"""The book: what notebooks call, and behind it what runs, judges and renders them.

A notebook calls ``save`` (hand the numbers over), ``step`` (keep what is finished of a long run), ``published`` and ``printed``
(the results on real data, the papers' numbers), ``beside`` (a table of all three), ``label`` and ``title`` (what a run is called).
"""

from mobpriv.book.comparison import beside, label, printed, title
from mobpriv.book.results import published, save, step

__all__ = ["beside", "label", "printed", "published", "save", "step", "title"]
