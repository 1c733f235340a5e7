"""Modules of kinematics are loaded with the first motion, and those of the planner only in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[4]
PROGRAM: Final = """
import sys
import models.motion.model
planning = ("models.planner", "models.motion.motions", "engine.kinematics")
print(*sorted(name for name in sys.modules if name.startswith(planning)))
import models.motion.motions, models.fake.arm.model
from engine.kinematics import read_chain
print(*sorted({"models.planner.solve", "engine.kinematics.urdf", "xml.etree.ElementTree"} & set(sys.modules)))
try:
    read_chain(b"<robot/>", "file")
except Exception:
    print("engine.kinematics.urdf" in sys.modules)
"""


def test_the_motion_service_and_an_arm_load_no_planner_and_no_xml_parser() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "", "True"]
