package intent

import v1 "berth/api/v1"

// FieldErrors is v1.FieldErrors.
type FieldErrors = v1.FieldErrors
