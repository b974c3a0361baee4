package edge

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// Errors of the HTTP layer.
var (
	ErrVendor = &v1.Error{Code: "invalid_vendor_header", Message: "Invalid vendor header"}
	errOrigin = &v1.Error{Code: "origin_denied", Message: "Origin is not allowed"}
	errPage   = &v1.Error{Code: "origin_denied",
		Message: "Origin is not allowed while authorization.enabled is false: name it in server.allowed_origins"}
	errHost = &v1.Error{Code: "host_denied",
		Message: "Host is not allowed while authorization.enabled is false: use localhost or a loopback address, or name the origin in " +
			"server.allowed_origins"}
	errFolded     = &v1.Error{Code: "malformed_request", Message: "Malformed request: a header is folded over several lines"}
	ErrRoute      = &v1.Error{Code: "route_not_found", Message: "Route not found"}
	ErrMethod     = &v1.Error{Code: "method_not_allowed", Message: "Method not allowed"}
	errTimeout    = &v1.Error{Code: "request_timeout", Message: "Request timed out"}
	ErrTooLarge   = &v1.Error{Code: "body_too_large", Message: "Request body is too large"}
	ErrMediaType  = &v1.Error{Code: "unsupported_media_type", Message: "Request body must be JSON without a content encoding"}
	errHeaders    = &v1.Error{Code: "headers_too_large", Message: "Request headers are too large"}
	ErrMalformed  = &v1.Error{Code: "malformed_request", Message: "Malformed request"}
	ErrUpgrade    = &v1.Error{Code: "upgrade_required", Message: "WebSocket upgrade required"}
	ErrOperations = &v1.Error{Code: v1.TooManyOperations,
		Message: "Too many operations of this kind are running or queued for this volume or token; retry when one of them has ended"}
	errChanged = &v1.Error{Code: v1.Precondition,
		Message: "File was changed: If-Match does not name its ETag; read it again, or send the request without If-Match"}
	errGone = &v1.Error{Code: v1.Precondition,
		Message: "File was deleted: If-Match needs one; send the request without If-Match to create it"}
	errThere = &v1.Error{Code: v1.Precondition,
		Message: "File already exists: If-None-Match names it; send the request without If-None-Match to replace it"}
	errForm = &v1.Error{Code: ErrMediaType.Code,
		Message: "Request body must be the content of the file, not a form: send it as it is, such as with curl -T or --data-binary"}
	errRange    = &v1.Error{Code: "range_not_satisfiable", Message: "Range not satisfiable"}
	errInternal = &v1.Error{Code: "internal", Message: "Internal server error"}
	errAnswers  = &v1.Error{Code: ErrOperations.Code,
		Message: "Too many large answers are being sent; retry when one of them was read, or request less at once"}
	errBusy        = &v1.Error{Code: "busy", Message: "Too many request bodies are being received; send the request again"}
	ErrUnavailable = &v1.Error{Code: v1.Unavailable, Message: "Service is not available"}
)

// statuses maps each error code to its HTTP status. Unlisted codes are 500.
var statuses = map[v1.Code]int{
	v1.InvalidRequest:    400,
	v1.InvalidPath:       400,
	v1.InvalidArchive:    400,
	v1.PortExists:        400,
	v1.PortNotInPool:     400,
	v1.StillInstalling:   400,
	ErrMalformed.Code:    400,
	v1.Unauthorized:      401,
	ErrVendor.Code:       403,
	errOrigin.Code:       403,
	errHost.Code:         403,
	v1.ScopeDenied:       403,
	v1.FileDenied:        403,
	v1.PullsDisabled:     403,
	v1.PullNotFound:      404,
	v1.TooManyPulls:      429,
	v1.ContainerNotFound: 404,
	v1.VolumeNotFound:    404,
	v1.PortNotFound:      404,
	v1.TokenNotFound:     404,
	v1.PathNotFound:      404,
	v1.BackupNotFound:    404,
	v1.PolicyNotFound:    404,
	v1.ScheduleNotFound:  404,
	v1.TooManySchedules:  429,
	v1.NoPorts:           404,
	ErrRoute.Code:        404,
	ErrMethod.Code:       405,
	errTimeout.Code:      408,
	v1.ContainerExists:   409,
	v1.ContainerDeleting: 409,
	v1.NotRunning:        409,
	v1.InputFull:         409,
	v1.NotCompleted:      409,
	v1.BackupInUse:       409,
	v1.BackupExists:      409,
	v1.PortBound:         409,
	v1.VolumeInUse:       409,
	v1.VolumeRestoring:   409,
	v1.Transferring:      409,
	v1.TransferNotFound:  404,
	v1.ArrivalNotFound:   404,
	v1.TooManyArrivals:   429,
	v1.AmbiguousVolume:   409,
	v1.FileExists:        409,
	v1.Precondition:      412,
	ErrTooLarge.Code:     413,
	v1.SizeLimit:         413,
	ErrMediaType.Code:    415,
	errRange.Code:        416,
	ErrUpgrade.Code:      426,
	v1.TooManyTokens:     429,
	v1.TooManyBackups:    429,
	ErrOperations.Code:   429,
	v1.TooManySessions:   429,
	v1.TooManyStarts:     429,
	v1.TooManyJobs:       429,
	v1.TooManyKeys:       429,
	v1.KeyReused:         422,
	v1.KeyInUse:          409,
	v1.OutcomeUnknown:    409,
	errHeaders.Code:      431,
	v1.ImageNotFound:     500,
	v1.StoreFailed:       500,
	v1.StoreDiskFull:     500, // the panels' interface has 500 for every store failure
	v1.WriteDenied:       500,
	errInternal.Code:     500,
	errBusy.Code:         503,
	v1.Unavailable:       503,
	v1.EngineUnavailable: 503,
	v1.DiskFull:          507,
	v1.BackupsFull:       507,
}

// Refusal returns the error that a client receives for err. An internal error
// becomes a constant text; the caller logs err if log is true.
func Refusal(err error) (refused *v1.Error, log bool) {
	var fault *fiber.Error
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return refused, hidesCause(refused.Code)
	case errors.As(err, &fault):
		return ofHTTP(fault.Code), false
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return errTimeout, false
	}
	return errInternal, true
}

// Status returns the HTTP status of a refusal.
func Status(refused *v1.Error) int {
	if status, listed := statuses[refused.Code]; listed {
		return status
	}
	return 500
}

// hidesCause reports whether the text of an error hides a cause that belongs in
// the log.
func hidesCause(code v1.Code) bool {
	return code == v1.EngineUnavailable || code == v1.StoreFailed || code == v1.StoreDiskFull
}

// ofHTTP returns our error for a status of the HTTP library, whose own texts may
// repeat parts of the request.
func ofHTTP(status int) *v1.Error {
	switch status {
	case 404:
		return ErrRoute
	case 405:
		return ErrMethod
	case 408:
		return errTimeout
	case 413:
		return ErrTooLarge
	case 426:
		return ErrUpgrade
	case 431:
		return errHeaders
	case 500:
		return errInternal
	}
	return ErrMalformed
}

// The Retry-After of a 503 and of a 429, in seconds.
const (
	retryAfter      = "2"
	operationsRetry = "5"
)

// Fail answers a request with err.
func (s *Server) Fail(c *fiber.Ctx, err error) error {
	refused, log := Refusal(err)
	status := Status(refused)
	if log {
		s.log.Error("request failed", slog.String("request", CallOf(c).ID),
			slog.String("route", c.Route().Path), slog.Any("err", err))
	}
	if status == 408 || status == 413 || refused.Code == ErrMalformed.Code {
		c.Context().SetConnectionClose()
	}
	if CallOf(c).ID == "" { // the request failed before observe
		c.Set("X-Request-Id", newRequestID())
	}
	switch status {
	case fiber.StatusServiceUnavailable:
		c.Set(fiber.HeaderRetryAfter, retryAfter)
	case fiber.StatusTooManyRequests:
		c.Set(fiber.HeaderRetryAfter, operationsRetry)
	}
	var retry *v1.RetryError
	if errors.As(err, &retry) {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(retry.After.Seconds()))))
	}
	c.Set("X-Error-Code", string(refused.Code))
	return Reply(c, status, errorBody{refused.Message})
}

type errorBody struct {
	Error string `json:"error"`
}
