package server

import (
	"errors"
	"log/slog"
	"net"
	"os"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// Errors of the HTTP layer. Errors of stored objects are in packages v1 and auth.
var (
	errVendor      = &v1.Error{Code: "invalid_vendor_header", Message: "Invalid vendor header"}
	errOrigin      = &v1.Error{Code: "origin_denied", Message: "Origin is not allowed"}
	errPage        = &v1.Error{Code: "origin_denied", Message: "Origin is not allowed while authorization.enabled is false: name it in server.allowed_origins"}
	errHost        = &v1.Error{Code: "host_denied", Message: "Host is not allowed while authorization.enabled is false: use localhost or a loopback address, or name the origin in server.allowed_origins"}
	errFolded      = &v1.Error{Code: "malformed_request", Message: "Malformed request: a header is folded over several lines"}
	errRoute       = &v1.Error{Code: "route_not_found", Message: "Route not found"}
	errMethod      = &v1.Error{Code: "method_not_allowed", Message: "Method not allowed"}
	errTimeout     = &v1.Error{Code: "request_timeout", Message: "Request timed out"}
	errTooLarge    = &v1.Error{Code: "body_too_large", Message: "Request body is too large"}
	errMediaType   = &v1.Error{Code: "unsupported_media_type", Message: "Request body must be JSON without a content encoding"}
	errHeaders     = &v1.Error{Code: "headers_too_large", Message: "Request headers are too large"}
	errMalformed   = &v1.Error{Code: "malformed_request", Message: "Malformed request"}
	errUpgrade     = &v1.Error{Code: "upgrade_required", Message: "WebSocket upgrade required"}
	errInternal    = &v1.Error{Code: "internal", Message: "Internal server error"}
	errBusy        = &v1.Error{Code: "busy", Message: "Too many request bodies are being received; send the request again"}
	errUnavailable = &v1.Error{Code: v1.Unavailable, Message: "Service is not available"}
)

// statuses maps each error code to its HTTP status. Unlisted codes are 500.
var statuses = map[v1.Code]int{
	v1.InvalidRequest:         400,
	v1.InvalidPath:            400,
	v1.InvalidArchive:         400,
	v1.PortExists:             400,
	v1.PortNotInPool:          400,
	v1.StillInstalling:        400,
	errMalformed.Code:         400,
	auth.ErrUnauthorized.Code: 401,
	errVendor.Code:            403,
	errOrigin.Code:            403,
	errHost.Code:              403,
	auth.ErrScope.Code:        403,
	v1.ContainerNotFound:      404,
	v1.VolumeNotFound:         404,
	v1.PortNotFound:           404,
	v1.TokenNotFound:          404,
	v1.PathNotFound:           404,
	v1.NoPorts:                404,
	errRoute.Code:             404,
	errMethod.Code:            405,
	errTimeout.Code:           408,
	v1.ContainerExists:        409,
	v1.ContainerDeleting:      409,
	v1.NotRunning:             409,
	v1.PortBound:              409,
	v1.VolumeInUse:            409,
	v1.AmbiguousVolume:        409,
	v1.FileExists:             409,
	v1.Precondition:           412,
	errTooLarge.Code:          413,
	v1.SizeLimit:              413,
	errMediaType.Code:         415,
	errRange.Code:             416,
	errUpgrade.Code:           426,
	v1.TooManyTokens:          429,
	errOperations.Code:        429,
	v1.TooManySessions:        429,
	errHeaders.Code:           431,
	v1.ImageNotFound:          500,
	v1.StoreFailed:            500,
	v1.StoreDiskFull:          500, // interface.md requires 500 for every store failure
	v1.WriteDenied:            500,
	errInternal.Code:          500,
	errBusy.Code:              503,
	v1.Unavailable:            503,
	v1.EngineUnavailable:      503,
	v1.DiskFull:               507,
}

// refusal returns the error that a client receives for err. An internal error
// becomes a constant text; known is false then, and the caller logs err.
func refusal(err error) (refused *v1.Error, known bool) {
	var fault *fiber.Error
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return refused, refused.Code != v1.EngineUnavailable // the cause belongs in the log
	case errors.Is(err, store.ErrDiskFull):
		return v1.ErrStoreDiskFull, false
	case errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrTooBig):
		return v1.ErrStoreFailed, false
	case errors.As(err, &fault):
		return ofHTTP(fault.Code), true
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return errTimeout, true
	}
	return errInternal, false
}

// ofHTTP returns our error for a status of the HTTP library, whose own texts may
// repeat parts of the request.
func ofHTTP(status int) *v1.Error {
	switch status {
	case 404:
		return errRoute
	case 405:
		return errMethod
	case 408:
		return errTimeout
	case 413:
		return errTooLarge
	case 426:
		return errUpgrade
	case 431:
		return errHeaders
	case 500:
		return errInternal
	}
	return errMalformed
}

// retryAfter is the Retry-After of a 503, in seconds.
const retryAfter = "2"

// fail answers a request with err.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	refused, known := refusal(callerOf(c).Redact(err))
	status, ok := statuses[refused.Code]
	if !ok {
		status = 500
	}
	if !known {
		s.log.Error("request failed", slog.String("request", requestID(c)),
			slog.String("route", c.Route().Path), slog.Any("err", err))
	}
	if status == 408 || status == 413 || refused.Code == errMalformed.Code {
		c.Context().SetConnectionClose()
	}
	if requestID(c) == "" { // the request failed before observe
		c.Set("X-Request-Id", newRequestID())
	}
	switch status {
	case fiber.StatusServiceUnavailable:
		c.Set(fiber.HeaderRetryAfter, retryAfter)
	case fiber.StatusTooManyRequests:
		c.Set(fiber.HeaderRetryAfter, operationsRetry)
	}
	c.Set("X-Error-Code", string(refused.Code))
	return reply(c, status, errorBody{refused.Message})
}

type errorBody struct {
	Error string `json:"error"`
}
