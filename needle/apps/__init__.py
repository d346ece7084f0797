"""The course's applications, and more: networks that learn digits, photographs and text.

``mlp_resnet``, ``cnn``, ``language_model`` and ``gpt`` are commands:
``python -m needle.apps.mlp_resnet --help``.
"""
