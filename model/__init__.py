"""The network and the file it is stored in; importing it loads torch and tokenizers, never Lightning or Hydra."""

from model.build import build_classifier
from model.checkpoint import TextClassifier, load_classifier
from model.classifier import Classifier
from model.task import Prediction

__all__ = ["Classifier", "Prediction", "TextClassifier", "build_classifier", "load_classifier"]
