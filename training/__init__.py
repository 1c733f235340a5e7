"""Training of models from labelled pictures: jobs and their rules, the engines that run them, and the trainers."""
