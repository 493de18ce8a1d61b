"""What makes a page of the built book another page, which must be visited again."""

from passed_pages import digest

PAGE = """<p>To repeat this page, run <code>mobpriv run x</code> (it takes 11 s on the data that come with the book), or</p><dd>0.1.0, commit ff49240f2897</dd>
<dt>running time</dt><dd>11 s</dd><p>AP-Attack finds 12 %.</p><script src="a.js?v=1"></script>"""


def test_a_time_and_a_commit_do_not():
    later = PAGE.replace("11 s", "2 min").replace("ff49240f2897", "a9d7776e1195 + changes")
    assert later != PAGE
    assert digest(later, "styles") == digest(PAGE, "styles")


def test_a_word_a_script_and_what_it_is_visited_with_do():
    changed = (PAGE.replace("12 %", "13 %"), PAGE.replace("v=1", "v=2"), PAGE.replace("mobpriv run x", "mobpriv run y"))
    assert len({digest(page, "styles") for page in (PAGE, *changed)} | {digest(PAGE, "other styles")}) == 5
