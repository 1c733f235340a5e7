"""A rig for tests of machines: a machine from a configuration, typed handles, faults, artefacts. A pytest plugin.

    @pytest.mark.machine("machine.json")
    async def test_heats(rig):
        await rig.get(Switch, "heater").set_position(1)

The plugin is `runtime.rig.plugin`; docs/howto/test-a-rig.md shows how to use it.
"""

from runtime.rig.faults import Faults as Faults
from runtime.rig.rig import Rig as Rig

__all__ = ["Faults", "Rig"]
