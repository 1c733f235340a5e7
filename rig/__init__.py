"""A pytest plugin for testing machines: a machine from a configuration, typed handles, faults and artefacts.

    @pytest.mark.machine("machine.json")
    async def test_heats(rig):
        await rig.get(Switch, "heater").set_position(1)

The plugin is `rig.plugin`; docs/howto/test-a-rig.md shows how to use it.
"""

from rig.faults import Faults as Faults
from rig.rig import Rig as Rig

__all__ = ["Faults", "Rig"]
