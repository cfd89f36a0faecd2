"""Language models: networks, their dropouts, their output weights and their initial weights."""

from trainables.language_model.awd_lstm import EMBEDDING_BOUND, AwdLstm, LstmContexts
from trainables.language_model.base import Contexts, LanguageModel, LstmState
from trainables.language_model.head import OutputHead
from trainables.language_model.transformer import NORM_EPSILON, Rotation, Transformer
