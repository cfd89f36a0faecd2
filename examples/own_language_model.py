"""Do mixtures of softmaxes help a model of your own? A causal convolution predicts the next word.

python sweep.py examples/own_language_model.py

The architecture is written here. Text, output layers and measurements are those of this project.
"""

import torch
from torch import nn

from search_spaces.study import Comparison, GroupTable, Study
from trainables.config import CorpusConfig, MosConfig, OutputLayerConfig, SoftmaxConfig, Trainable
from trainables.corpora import identity, load
from trainables.measurements import log_p_spectrum, rank_report
from trainables.output_layers import LayerShape, build_output_layer


class Convolution(nn.Module):
    """A context vector for each of T tokens, T x C, from the token and the `span` before it."""

    def __init__(self, words: int, width: int, span: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.convolution = nn.Conv1d(width, width, span + 1)
        self.span = span

    def forward(self, tokens_T):
        """Return the context vectors; zeros precede the text."""
        embedded_CT = self.embedding(tokens_T).T
        padded_CT = nn.functional.pad(embedded_CT, (self.span, 0))
        return torch.tanh(self.convolution(padded_CT[None])[0].T)


class ConvolutionTrial(Trainable):
    """A convolution under one of the project's output layers."""

    text: CorpusConfig
    output_layer: OutputLayerConfig
    width: int = 24
    span: int = 4
    learning_rate: float = 5e-3
    epochs: int = 8

    def train(self, trial):
        """Train, and return perplexity and rank on the test text."""
        corpus = load(self.text, data_dir=trial.data_dir)
        train_T, test_T = (
            torch.tensor(ids, device=trial.device) for ids in (corpus.train, corpus.test[:2000])
        )
        shape = LayerShape(
            vocabulary_size=len(corpus.vocabulary),
            embedding_width=self.width,
            context_width=self.width,
        )
        network = Convolution(shape.vocabulary_size, self.width, self.span)
        output = build_output_layer(self.output_layer, shape)
        output.initialise(torch.Generator().manual_seed(trial.seed))
        weight_VD = network.embedding.weight  # the output weights are the embedding
        model = nn.ModuleList([network, output]).to(trial.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)

        first = trial.restore(model=model, optimizer=optimizer)
        for epoch in range(first, self.epochs):
            model.train()
            for part in train_T.split(1000):
                loss = output.loss(network(part[:-1])[:, None], weight_VD, part[1:])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            trial.report(epoch, train_loss=loss)

        model.eval()
        with torch.no_grad():
            log_p_TV = output.log_probabilities(network(test_T[:-1]), weight_VD)
        test_loss = -log_p_TV.gather(1, test_T[1:, None]).mean()
        rows, columns = log_p_TV.shape
        spectrum = log_p_spectrum([log_p_TV.cpu().numpy()], rows=rows, columns=columns)
        return {"test_perplexity": test_loss.exp(), **rank_report(spectrum)}


def trials():
    """Yield a trial per output layer, on the built-in text with its 500 most frequent words."""
    text = identity("pydocs", data_dir=None)
    corpus = CorpusConfig(name=text.name, sha256=text.sha256, vocabulary_limit=500)
    for layer in (SoftmaxConfig(), MosConfig(mixtures=4)):
        yield ConvolutionTrial(text=corpus, output_layer=layer)


STUDY = Study(
    name="convolution",
    question="Has a mixture of softmaxes a lower perplexity, and a higher rank?",
    trials=trials,
    label=lambda config: config.output_layer.name,
    seeds=3,
    metric="test_perplexity",
    scales={"smoke": {"epochs": 1}},
    analyses=(
        Comparison(baseline="softmax"),
        GroupTable(metrics=("test_perplexity", "press_rank")),
    ),
)
