"""Which metrics can be recorded: at least those that the program makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainables.config.contexts import Context
from trainables.trial_folder.metrics import WordsAfter, check_metrics

GROUPS = st.text(
    st.characters(categories=("L", "M", "N", "Pc"), include_characters="-"), min_size=1
)


@given(GROUPS | st.sampled_from(["हिन्दी", "cafe\u0301", "a-b_c"]), st.integers(1, 10**18 - 1))
def test_the_words_after_any_context_that_is_taken_can_be_recorded(group: str, number: int) -> None:
    try:
        context = Context(group=group, number=number, last_token_index=0)
    except ValidationError:  # a letter that is no letter in that version of Unicode
        return
    words = WordsAfter(next="the", probability=0.5, rank=1, top=(("the", 0.5),))
    check_metrics({f"top_k {context.group} {context.number}": words.model_dump_json()})


@pytest.mark.parametrize("number", [0, 10**18])
def test_a_number_that_could_not_be_recorded_is_refused_where_it_is_typed(number: int) -> None:
    with pytest.raises(ValidationError):
        Context(number=number, last_token_index=0)
