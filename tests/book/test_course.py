"""The plan of the course: ten lessons of 90 minutes, of pages and exercises that exist."""

import re

import pytest

from mobpriv.book import build, course, yaml_files
from mobpriv.book.results import ROOT

PLAN = course.plan(ROOT)


def test_ten_lessons_of_ninety_minutes_name_pages_and_exercises_of_the_book():
    in_contents = {str(file).rpartition("/")[2] for files in build._contents(ROOT).values() for file in files}
    assert len(PLAN) == 10
    for lesson in PLAN:
        assert 0 < sum(lesson.exercises.values()) <= 75, "15 minutes remain for the figures"
        assert set(lesson.read) <= in_contents
        assert len(lesson.mistakes) >= 3
    every = [label for lesson in PLAN for label in (*lesson.exercises, *lesson.home)]
    assert sorted(every) == sorted([*course.exercises(ROOT), "project"]), "each exercise is done once"


def test_a_field_that_is_unknown_or_missing_is_named(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "course.yml").write_text("- {title: One, minutes: 3}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"book/course.yml, lesson 1: the fields are title, .* \(got title, minutes\)"):
        course.plan(tmp_path)


def test_without_a_plan_there_are_no_lessons(tmp_path):
    assert course.plan(tmp_path) == []


def test_words_that_a_reader_sees_are_counted(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "one.md").write_text(
        "# Two words\n\n[three more words](far/away.md) and {{x}}\n\n```bash\nnot this\n```\n<details>nor\n\nthis</details>\n",
        encoding="utf-8",
    )
    assert course.words("one", tmp_path) == len("Two words three more words and x".split())


def test_a_slide_page_has_the_question_the_answer_and_the_figure_of_each_page():
    lesson = PLAN[1]._replace(read=["thesis_3", "thesis_3_attacks"])
    shown = list(course.slides(lesson, 2, {"thesis_3_attacks": "AP-Attack."}, lambda name: f"<figure>{name}</figure>", ROOT))
    assert [slide.title for slide in shown] == [f"2. {lesson.title}", course.title("thesis_3_attacks", ROOT)], (
        "chapters have no slide"
    )
    page = course.slide_sections(shown, lambda text: f"<p>{text}</p>")
    assert re.search(r"<h2>Figure 3.3.*?</h2><p>AP-Attack.</p><figure>thesis_3_attacks</figure></section>", page)


def test_the_plan_is_the_only_place_of_common_mistakes():
    texts = [mistake for lesson in yaml_files.content(ROOT / "book" / "course.yml") for mistake in lesson["mistakes"]]
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md"))
    assert texts
    assert not any(text in pages for text in texts)
