"""Data model of the cloud: one folder for each aggregate or for a few of them. All SQL is here or in cloud.store."""
