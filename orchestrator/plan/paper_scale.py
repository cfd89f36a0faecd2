"""Whether a scale makes anything of a study smaller than the paper has it."""

from __future__ import annotations

from orchestrator.plan.study_trials import trials_at
from search_spaces.scales import SCALES
from search_spaces.study import Study
from trainables.config import CorpusConfig
from trainables.corpora import NO_TEXT


def is_paper_scale(study: Study, scale: str) -> bool:
    """Whether the trials at the scale of that name are those of scale paper, all of them and unchanged.

    Of a study that reads text only scale paper's are. Raises UserError where the study cannot make its trials.
    """
    if scale == "paper":
        return True
    if study.reads_text or study.tuning is not None or scale not in SCALES:
        return False
    corpus = CorpusConfig(name=NO_TEXT.name, sha256=NO_TEXT.sha256)
    return trials_at(study, SCALES[scale], corpus) == trials_at(study, SCALES["paper"], corpus)


def scale_summary(study: Study, scale: str) -> str:
    """What the scale makes of the study, for the first lines of a run."""
    if study.reads_text:
        return SCALES[scale].summary
    if is_paper_scale(study, scale):
        return "exactly what the study computes at scale paper"
    smaller = "smaller arrays, or fewer inputs, examples or steps, than at scale paper"
    return f"a few trials of the study, {smaller}" if scale == "smoke" else f"the whole study with {smaller}"
