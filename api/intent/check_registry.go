package intent

import (
	"strings"

	"github.com/distribution/reference"

	v1 "berth/api/v1"
)

// checkRegistry adds an error for each image of spec that is not from the registry
// whose credentials it names: the engine would send them to another registry.
func checkRegistry(f *v1.FieldErrors, spec v1.ContainerSpec) {
	if spec.RegistryAuth == "" {
		return
	}
	checkFrom(f, "image", spec.Image, spec.RegistryAuth)
	checkFrom(f, "install_image", spec.InstallImage, spec.RegistryAuth)
}

func checkFrom(f *v1.FieldErrors, field, image, host string) {
	if image == "" || !isImage(image) {
		return // checkImage reports it
	}
	if from := registryOf(image); !strings.EqualFold(from, v1.CanonicalRegistry(host)) {
		f.Add(field, "must be from %s, the registry that registry_auth names; it is from %s", host, from)
	}
}

// registryOf returns the host that image is pulled from. An image that is named only
// by its id has no registry.
func registryOf(image string) string {
	name, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "no registry"
	}
	return reference.Domain(name)
}
