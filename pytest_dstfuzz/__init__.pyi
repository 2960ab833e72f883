from pytest_dstfuzz import lexicon as lexicon
from pytest_dstfuzz import strategies as strategies
from pytest_dstfuzz import testing as testing
from pytest_dstfuzz import transformations as transformations
from pytest_dstfuzz.campaign.campaign import Campaign as Campaign
from pytest_dstfuzz.campaign.results import TurnResult as TurnResult
from pytest_dstfuzz.campaign.results import VariantResult as VariantResult
from pytest_dstfuzz.comparisons.comparison import Compared as Compared
from pytest_dstfuzz.comparisons.comparison import Comparison as Comparison
from pytest_dstfuzz.comparisons.registry import register_comparison as register_comparison
from pytest_dstfuzz.config import Settings as Settings
from pytest_dstfuzz.dialogue.calls import Outcome as Outcome
from pytest_dstfuzz.dialogue.calls import Tool as Tool
from pytest_dstfuzz.dialogue.calls import Transcript as Transcript
from pytest_dstfuzz.dialogue.dialogues import Admissible as Admissible
from pytest_dstfuzz.dialogue.dialogues import BeliefState as BeliefState
from pytest_dstfuzz.dialogue.dialogues import Context as Context
from pytest_dstfuzz.dialogue.dialogues import Dialogue as Dialogue
from pytest_dstfuzz.dialogue.dialogues import DialogueSet as DialogueSet
from pytest_dstfuzz.dialogue.dialogues import Difference as Difference
from pytest_dstfuzz.dialogue.dialogues import Exchange as Exchange
from pytest_dstfuzz.dialogue.dialogues import Turn as Turn
from pytest_dstfuzz.dialogue.dialogues import diff_states as diff_states
from pytest_dstfuzz.dialogue.load import load_dialogues as load_dialogues
from pytest_dstfuzz.dialogue.readers.registry import register_reader as register_reader
from pytest_dstfuzz.dialogue.readers.source import Reader as Reader
from pytest_dstfuzz.errors import DataError as DataError
from pytest_dstfuzz.errors import DstFuzzError as DstFuzzError
from pytest_dstfuzz.errors import TrackerError as TrackerError
from pytest_dstfuzz.errors import UserError as UserError
from pytest_dstfuzz.gate.verdict import Limit as Limit
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon as load_lexicon
from pytest_dstfuzz.plugin.turn import DstProposer as DstProposer
from pytest_dstfuzz.plugin.turn import DstReport as DstReport
from pytest_dstfuzz.plugin.turn import DstTurn as DstTurn
from pytest_dstfuzz.relations.contexts import AskedQuestion as AskedQuestion
from pytest_dstfuzz.relations.contexts import ContextCheck as ContextCheck
from pytest_dstfuzz.relations.contexts import (
    register_context_check as register_context_check,
)
from pytest_dstfuzz.relations.contexts import (
    register_perturbation as register_perturbation,
)
from pytest_dstfuzz.relations.registry import register_relation as register_relation
from pytest_dstfuzz.relations.relation import Delta as Delta
from pytest_dstfuzz.relations.relation import Expected as Expected
from pytest_dstfuzz.relations.relation import Inapplicable as Inapplicable
from pytest_dstfuzz.relations.relation import Move as Move
from pytest_dstfuzz.relations.relation import Relation as Relation
from pytest_dstfuzz.relations.relation import Replacement as Replacement
from pytest_dstfuzz.relations.relation import Rewrite as Rewrite
from pytest_dstfuzz.relations.relation import Scene as Scene
from pytest_dstfuzz.relations.relation import Verdict as Verdict
from pytest_dstfuzz.search.protocol import Feedback as Feedback
from pytest_dstfuzz.search.protocol import Proposal as Proposal
from pytest_dstfuzz.search.protocol import Search as Search
from pytest_dstfuzz.search.protocol import SearchFamily as SearchFamily
from pytest_dstfuzz.search.protocol import SearchTask as SearchTask
from pytest_dstfuzz.search.protocol import Trained as Trained
from pytest_dstfuzz.search.registry import register_search as register_search
from pytest_dstfuzz.trackers.registry import register_tracker as register_tracker
from pytest_dstfuzz.trackers.schemes import register_scheme as register_scheme
from pytest_dstfuzz.trackers.tracker import Prediction as Prediction
from pytest_dstfuzz.trackers.tracker import StatefulTracker as StatefulTracker
from pytest_dstfuzz.trackers.tracker import Tracker as Tracker
from pytest_dstfuzz.trackers.tracker import gini_impurity as gini_impurity

__version__: str
