package v1

import "time"

// Image is an image that berth has pulled. Its id is the engine's.
type Image = Object[ImageSpec, ImageStatus]

// ImageSpec is the origin of an image.
type ImageSpec struct {
	Ref string `json:"ref"` // by which it was pulled first
}

// ImageStatus is the observed state of an image.
type ImageStatus struct {
	UnusedSince *time.Time `json:"unused_since,omitempty"` // since when no container names it; nil: one does, or it is unknown
}
