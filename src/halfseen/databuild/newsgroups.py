"""Four newsgroups in 20 dimensions: latent semantic analysis and logistic regression."""

import numpy as np

from halfseen.databuild.raw import Raw, stratified_split
from halfseen.worlds.product_context import Frozen

PACKAGES = ("numpy", "scipy", "scikit-learn")
RANK = 20
_GROUPS = ("rec.autos", "rec.sport.baseball", "sci.space", "talk.politics.misc")
_MAX_WORDS = 20_000


def load() -> Raw:
    """Return the documents of both published halves, without headers, footers and quotes.

    Empty documents stay. scikit-learn downloads what its data home does not have.
    """
    from sklearn.datasets import fetch_20newsgroups

    found = fetch_20newsgroups(
        subset="all", categories=list(_GROUPS), remove=("headers", "footers", "quotes")
    )
    return Raw(found.data, np.asarray(found.target, dtype=np.int64))


def represent(raw: Raw, seed: int, *, rank: int = RANK) -> Frozen:
    """Return features of all held-out documents and the classifier's weights.

    Words are counted sublinearly and weighted by rarity, both fitted on the training side; a
    truncated singular value decomposition takes them to `rank` dimensions, which are standardized;
    each document is scaled to norm 1. The classifier, fitted on the training side, has no
    intercept: its scores are w_k'h.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    train, heldout = stratified_split(raw.labels, np.random.default_rng(seed))
    pipeline = make_pipeline(
        TfidfVectorizer(
            max_features=_MAX_WORDS, min_df=2, stop_words="english", sublinear_tf=True, norm="l2"
        ),
        TruncatedSVD(rank, random_state=seed),
        StandardScaler(),
        Normalizer(),
    )
    seen = pipeline.fit_transform([raw.items[index] for index in train])
    features = pipeline.transform([raw.items[index] for index in heldout])
    classifier = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000)
    classifier.fit(seen, raw.labels[train])
    labels = raw.labels[heldout]
    return Frozen(
        features,
        classifier.coef_,
        labels,
        float(classifier.score(seen, raw.labels[train])),
        float(classifier.score(features, labels)),
    )
