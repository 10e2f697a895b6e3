"""The network and the file it is stored in; importing it loads torch and tokenizers, never Lightning or Hydra."""

from model.build import build_classifier
from model.checkpoint import load_classifier
from model.classifier import Classifier
from model.task import Prediction
from model.text_classifier import TextClassifier

__all__ = ["Classifier", "Prediction", "TextClassifier", "build_classifier", "load_classifier"]
