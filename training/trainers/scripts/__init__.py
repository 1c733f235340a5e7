"""Training scripts of the registry that run the trainers: `training.client.trainers` packs them."""
