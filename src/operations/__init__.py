"""Your code. This is the one folder of the project that you edit, and it may import anything.

onejob runs `OPERATIONS`. `ONEJOB_OPERATIONS=package.module` names another module that has it. Of onejob itself, import
these names only; later versions keep them:

- `domain.operation`: `Operations`, `Operation`, `DEFAULT_OPERATION`
- `domain.job`: `Job`
- `domain.attempt`: `Attempt`
- `domain.errors`: `PermanentError`
"""

from domain.operation import DEFAULT_OPERATION, Operation, Operations
from operations.example import run_business_operation
from operations.reservations import reserve

OPERATIONS = Operations(
    Operation(DEFAULT_OPERATION, run_business_operation),
    Operation("reserve", reserve),
)
