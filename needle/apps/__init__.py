"""The course's applications and more: networks that learn digits, photographs and text.

``simple_ml``, ``mlp_resnet``, ``cnn``, ``language_model``, ``gpt`` and ``models`` are commands:
``python -m needle.apps.mlp_resnet --help``.
"""
