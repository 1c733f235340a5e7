"""The numbers of a dataset that a job is checked by: the database counts as a plain function counts the pictures."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from cloud.domain.data import files, labels
from cloud.domain.data.labels import Edges
from cloud.domain.training.pictures import examples, pictures
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.captured import DATA
from tests.unit.cloud.conftest import BOTH
from tests.unit.cloud.services.training.world import tenant
from training.jobs import submission
from training.jobs.submission import ModelType

NAMES = ["ok", "bad", "other", "OK"]


def label(sql: Sql, ids: list[str], seed: int) -> None:
    """Give pictures tags, labels, boxes and suggestions, some of them several of the same name."""
    chance = random.Random(seed)
    for subject in ids:
        files.add_tags(sql, [subject], chance.sample(NAMES, chance.choice([0, 0, 1, 2])))
        for _ in range(chance.randrange(4)):
            edges = Edges(0.1, 0.1, chance.choice([0.5, 1.0]), 0.9) if chance.random() < 0.6 else None
            labels.add(sql, subject, chance.choice(NAMES), edges, chance.choice([None, None, 0.5]))


@BOTH
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_database_counts_as_the_function_counts(cloud: MemoryCloud, seed: int) -> None:
    us = await tenant(cloud)
    await us.add("", number=30)
    other = await us.uploads.file(b"no picture", "notes.txt")
    await us.call(DATA, "add_binary_data_to_dataset_by_ids", binary_data_ids=[other], dataset_id=us.dataset)

    def work(sql: Sql) -> None:
        label(sql, [entry.picture.id for entry in pictures(sql, us.dataset, us.organization)] + [other], seed)

    await cloud.cloud.store.write(work)

    def counted(sql: Sql, model_type: ModelType, chosen: list[str]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        every = [entry.picture for entry in pictures(sql, us.dataset, us.organization)]
        by_function = submission.count_examples(model_type, chosen, every)
        return asdict(examples(sql, us.dataset, us.organization, model_type, chosen)), asdict(by_function)

    for model_type in (ModelType.MULTI_LABEL_CLASSIFICATION, ModelType.OBJECT_DETECTION):
        for chosen in (["ok", "bad"], ["OK"], ["absent", "other"], []):
            numbers, expected = await cloud.cloud.store.read(lambda sql: counted(sql, model_type, chosen))  # noqa: B023 - ends at once
            assert numbers == expected
            assert numbers["total"] == 30
            assert numbers["labelled"] > 5
            assert numbers["suggested"] > 0
