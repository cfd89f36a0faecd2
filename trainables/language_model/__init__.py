"""AWD-LSTM: the network, its dropouts and its initial weights."""

from trainables.language_model.awd_lstm import AwdLstm, LstmState
