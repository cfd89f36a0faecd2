"""The rank of a head is at most its width."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainables.config import LanguageModelConfig, TransformerConfig


def test_a_head_of_the_width_is_taken_and_one_above_it_refused() -> None:
    assert (
        LanguageModelConfig(head_rank=400).head_rank
        == TransformerConfig(head="untied", head_rank=400).head_rank
    )
    with pytest.raises(ValidationError, match="at most the width, here 400; got 401"):
        LanguageModelConfig(head_rank=401)
    with pytest.raises(ValidationError, match="here 512; got 513"):
        TransformerConfig(head="untied", head_rank=513)
