"""What there is: the commands by section, and the pages of the documentation they point to."""

from __future__ import annotations

#: In the order in which people meet them. Each is a module here with a click command `command`;
#: a name that Python keeps for itself has a line under it. The text is the first sentence of the
#: command's help, here so that a list of commands imports none of them.
SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Compare the methods on simulated faces.",
        "simulate": "Write a simulated dataset folder.",
        "methods": "List the methods and their properties.",
    },
    "Data": {
        "import": "Make a dataset folder from data in its owners' layout.",
        "embed": "Detect, align and embed the faces in pictures.",
        "pairs": "Build pairs of images from identities.",
        "check": "Describe a dataset and find what is wrong with it.",
    },
    "Fit and score": {
        "choose": "Choose FairCal's clusters and calibrator on people held out.",
        "fit": "Fit a method on labelled pairs and write a model file.",
        "score": "Score pairs with a model.",
    },
    "Measure": {
        "audit": "Measure scores by group.",
        "regions": "Find where in embedding space it is worst, without attributes.",
        "threshold": "Find a threshold with a guaranteed false-positive rate.",
        "plan": "Say how many people and pairs a wanted interval needs.",
        "benchmark": "Compare methods by leave-one-fold-out.",
        "compare": "Tell what differs between two runs, and stop an update that is worse.",
        "report": "Write the report of a benchmark or an audit again.",
    },
    "Classifiers": {
        "classify": "Calibrate and measure the probabilities of any classifier.",
    },
    "The paper": {
        "reproduce": "Repeat the paper's experiment, with every table and figure.",
    },
    "Production": {
        "card": "Print the model card of a model file.",
        "export": "Write a model as one ONNX graph.",
        "serve": "Serve a model over HTTP: verify, enrol, identify.",
        "keys": "Make, list and remove API keys of the service.",
        "monitor": "Tell whether pairs in use still are what a model was calibrated for.",
    },
    "This shell": {
        "completion": "Print or install the script that completes commands in your shell.",
    },
}

#: All of them, with their text.
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}

#: Pages of the documentation: where each lies, and its title.
PAGES = {
    "explanation/pitfalls": "Pitfalls",
    "explanation/report": "How to read the report",
    "explanation/rivals": "What each method does",
    "explanation/simulation": "Simulated data",
    "explanation/uncertainty": "Why intervals know people",
    "how-to/big-data": "A hundred million pairs on one machine",
    "how-to/choose": "Choose a method, K and a calibrator",
    "how-to/classifier-options": "Calibrate your classifier",
    "how-to/compare": "Is the update worse for anybody?",
    "how-to/label-noise": "When group labels are wrong",
    "how-to/monitoring": "Monitoring: does the model still fit those it is used on?",
    "how-to/moved-population": "Calibrate here, test there",
    "how-to/onnx": "A model without faircal: ONNX",
    "how-to/own-network": "A network of your own",
    "how-to/pairs": "Build pairs",
    "how-to/plan": "How many people, images and pairs",
    "how-to/prior": "Probabilities for another share of genuine pairs",
    "how-to/real-data": "From files to a dataset",
    "how-to/regions": "Find the worst regions without attributes",
    "how-to/reproduce": "Repeating the paper",
    "how-to/service": "Run the service",
    "how-to/spark": "On a Spark cluster",
    "how-to/threshold": "Set a threshold with a promise",
    "how-to/trained-methods": "The trained methods",
    "reference/formats": "Files and columns",
    "reference/glossary": "Glossary",
    "tutorials/audit": "Audit a vendor's scores",
    "tutorials/classifier": "FairCal for any classifier",
    "tutorials/own-method": "Your own method, in one file",
    "tutorials/photos": "From a folder of photos to a fair threshold",
    "tutorials/production": "In production",
}
