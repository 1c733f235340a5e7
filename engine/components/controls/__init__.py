"""Components for inputs and outputs: boards, buttons, switches, input controllers."""
