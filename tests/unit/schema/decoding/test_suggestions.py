"""The most similar choice for a misspelled word: what is compared at the limits."""

from __future__ import annotations

from schema.decoding.report import _LONGEST_WORD, _MOST_CHOICES, nearest


def test_the_longest_word_is_still_compared() -> None:
    word = "a" * _LONGEST_WORD
    assert nearest(word, [word]) == word
    assert nearest(f"{word}a", [word]) is None


def test_the_largest_number_of_choices_is_still_compared() -> None:
    choices = [f"choice-{number}" for number in range(_MOST_CHOICES)]
    assert nearest("Choice-7", choices) == "choice-7"
    assert nearest("Choice-7", [*choices, "one more"]) is None
