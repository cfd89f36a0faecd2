"""AWD-LSTM: the network, its dropouts and its initial weights."""
