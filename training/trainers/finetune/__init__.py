"""Trainers that fine-tune a pretrained network with PyTorch, which nothing else imports."""
