"""What the terminal and the page show of each answer to a study's question: sentences, tables, figures."""

from __future__ import annotations

from orchestrator.analysis.audit import RecomputedNumbers
from orchestrator.analysis.contrasts import ContrastNumbers
from orchestrator.analysis.counts import CountNumbers
from orchestrator.analysis.groups import CurveNumbers, DifferenceNumbers, GroupNumbers
from orchestrator.analysis.jacobians import JacobianNumbers
from orchestrator.analysis.lines import LineNumbers
from orchestrator.analysis.paired_contrasts import PairedNumbers
from orchestrator.analysis.predictions import PredictionNumbers
from orchestrator.analysis.press_noise import PressNoiseNumbers
from orchestrator.analysis.similarity import SimilarityNumbers
from orchestrator.analysis.summary import Answer, StudySummaryNumbers
from orchestrator.analysis.true_rank import TrueRankNumbers
from orchestrator.analysis.tuned import TunedNumbers
from orchestrator.report.sections.contrasts import contrast_section
from orchestrator.report.sections.counts import count_section
from orchestrator.report.sections.curves import curve_section
from orchestrator.report.sections.groups import difference_section, group_section
from orchestrator.report.sections.jacobians import jacobian_section
from orchestrator.report.sections.lines import line_section
from orchestrator.report.sections.paired import paired_section
from orchestrator.report.sections.predictions import prediction_section
from orchestrator.report.sections.press_noise import press_noise_section
from orchestrator.report.sections.recomputed import recomputed_section
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.similarity import similarity_section
from orchestrator.report.sections.true_rank import true_rank_section
from orchestrator.report.sections.tuned import tuned_section

__all__ = ["Section", "sections"]


def sections(summary: StudySummaryNumbers) -> tuple[Section, ...]:
    """One section for each of the study's answers, in its order; of a kind that comes again, with a number."""
    found: list[Section] = []
    for answer in summary.answers:
        section = _section(answer)
        earlier = sum(other.key.partition("-")[0] == section.key for other in found)
        found.append(section.numbered(earlier + 1) if earlier else section)
    return tuple(found)


def _section(answer: Answer) -> Section:
    match answer:
        case GroupNumbers():
            return group_section(answer)
        case DifferenceNumbers():
            return difference_section(answer)
        case ContrastNumbers():
            return contrast_section(answer)
        case PairedNumbers():
            return paired_section(answer)
        case CountNumbers():
            return count_section(answer)
        case CurveNumbers():
            return curve_section(answer)
        case LineNumbers():
            return line_section(answer)
        case PredictionNumbers():
            return prediction_section(answer)
        case SimilarityNumbers():
            return similarity_section(answer)
        case TunedNumbers():
            return tuned_section(answer)
        case JacobianNumbers():
            return jacobian_section(answer)
        case PressNoiseNumbers():
            return press_noise_section(answer)
        case RecomputedNumbers():
            return recomputed_section(answer)
        case TrueRankNumbers():
            return true_rank_section(answer)
