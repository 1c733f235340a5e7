"""Trainer of classifiers that fine-tunes a pretrained network with PyTorch, which nothing else imports."""
