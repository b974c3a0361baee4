// Package image pulls images while the disk of the engine has space, and removes those that it
// has pulled and that no container names any more. Each is recorded in the store by its id,
// since when it is not named too. It never removes an image that it has not pulled, that has
// another name, or from which a container exists.
//
// It knows no containers beyond the images that their specs name.
package image
