"""What machines tell while somebody looks at them."""

from typing import Final

TABLES: Final = ""
