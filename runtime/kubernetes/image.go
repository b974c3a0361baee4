package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"berth/runtime"
)

// imageCache holds the images that were resolved since berth started, by their reference.
type imageCache struct {
	mu     sync.Mutex // guards images
	images map[string]resolved
}

// resolved is an image whose tag was resolved.
type resolved struct {
	digest string
	ref    string       // with the digest in place of the tag
	auth   runtime.Auth // of its registry
	config ocispec.ImageConfig
}

func (i *imageCache) get(ref string) (resolved, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	image, known := i.images[ref]
	return image, known
}

func (i *imageCache) put(ref string, image resolved) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.images == nil {
		i.images = map[string]resolved{}
	}
	i.images[ref] = image
}

func (i *imageCache) drop(ref string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.images, ref)
}

// ImageID returns the digest to which ref was resolved by the last Pull; empty if there was
// none since berth started.
func (e *Engine) ImageID(_ context.Context, ref string) (string, error) {
	image, _ := e.images.get(ref)
	return image.digest, nil
}

// Foreign returns nothing: a node pulls the image of its own platform, or refuses to.
func (e *Engine) Foreign(context.Context, string) (string, error) { return "", nil }

// Gateway returns nothing: the node of a container is known only once it has started.
func (e *Engine) Gateway(context.Context) (string, error) { return "", nil }

// Pull resolves ref in its registry. A node pulls the image at the start of a container, with
// the same credentials. There is no progress to report.
func (e *Engine) Pull(ctx context.Context, ref string, a runtime.Auth, _ func(runtime.Progress)) error {
	return e.do(ctx, listed, "pull", ref, func(ctx context.Context) error {
		image, err := e.resolve(ctx, ref, a)
		if err != nil {
			return err
		}
		e.images.put(ref, image)
		return nil
	})
}

func (e *Engine) resolve(ctx context.Context, ref string, a runtime.Auth) (image resolved, err error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return image, fmt.Errorf("%w: %w", runtime.ErrInvalid, err)
	}
	host := reference.Domain(named)
	repository, err := remote.NewRepository(named.Name())
	if err != nil {
		return image, fmt.Errorf("%w: %w", runtime.ErrInvalid, err)
	}
	repository.PlainHTTP = slices.Contains(e.cfg.PlainHTTP, host) || isLoopback(host)
	client := &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache()}
	if a != (runtime.Auth{}) {
		if !strings.EqualFold(host, a.Host) {
			return image, fmt.Errorf("%w: the image is from %s, and the credentials are for %s", runtime.ErrInvalid, host, a.Host)
		}
		client.Credential = auth.StaticCredential(repository.Reference.Host(), auth.Credential{Username: a.Username, Password: a.Password})
	}
	repository.Client = client
	descriptor, err := repository.Resolve(ctx, tagOf(named))
	if err != nil {
		return image, registryError(err)
	}
	image.digest, image.auth = descriptor.Digest.String(), a
	image.ref = named.Name() + "@" + image.digest
	if image.config, err = configOf(ctx, repository, descriptor); err != nil {
		return image, registryError(err)
	}
	return image, nil
}

// isLoopback reports whether a registry is on this machine, so that it is asked without TLS, as
// container engines do.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// maxDescription bounds the manifest and the configuration of an image, in bytes.
const maxDescription = 4 << 20

// configOf reads the configuration of an image: its command and its user. An image for several
// architectures has several; that for berth's own stands for all.
func configOf(ctx context.Context, repository *remote.Repository, image ocispec.Descriptor) (c ocispec.ImageConfig, err error) {
	options := oras.FetchBytesOptions{MaxBytes: maxDescription}
	if image.MediaType == ocispec.MediaTypeImageIndex || image.MediaType == mediaTypeList {
		options.TargetPlatform = &ocispec.Platform{OS: "linux", Architecture: goruntime.GOARCH}
	}
	_, text, err := oras.FetchBytes(ctx, repository, image.Digest.String(), options)
	if err != nil {
		return c, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return c, err
	}
	if manifest.Config.Size > maxDescription {
		return c, fmt.Errorf("the configuration of the image has %d bytes: %w", manifest.Config.Size, errdef.ErrSizeExceedsLimit)
	}
	if text, err = content.FetchAll(ctx, repository, manifest.Config); err != nil {
		return c, err
	}
	var whole ocispec.Image
	err = json.Unmarshal(text, &whole)
	return whole.Config, err
}

// mediaTypeList is Docker's own type of an image for several architectures.
const mediaTypeList = "application/vnd.docker.distribution.manifest.list.v2+json"

// RemoveImage forgets to which digest ref was resolved. The nodes themselves remove the images
// that no pod needs.
func (e *Engine) RemoveImage(_ context.Context, _, ref string) error {
	e.images.drop(ref)
	return nil
}

// tagOf returns the digest or the tag of a reference.
func tagOf(named reference.Named) string {
	if digested, is := named.(reference.Digested); is {
		return digested.Digest().String()
	}
	return reference.TagNameOnly(named).(reference.Tagged).Tag()
}

// registryError wraps an error of a registry in one of package runtime.
func registryError(err error) error {
	var answer *errcode.ErrorResponse
	class := runtime.ErrUnavailable
	switch {
	case errors.Is(err, context.Canceled):
		class = context.Canceled
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the registry has no TLS, and is not named in kubernetes.plain_registries: %w", runtime.ErrUnavailable, err)
	case errors.Is(err, errdef.ErrNotFound):
		class = runtime.ErrImageNotFound
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		class = runtime.ErrDenied
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		class = runtime.ErrInvalid
	case errors.As(err, &answer):
		switch answer.StatusCode {
		case http.StatusNotFound:
			class = runtime.ErrImageNotFound
		case http.StatusUnauthorized, http.StatusForbidden:
			class = runtime.ErrDenied
		}
	}
	return fmt.Errorf("%w: %w", class, err)
}

// keepCredentials stores credentials in the Secret of a container, with the name of its pods.
func (e *Engine) keepCredentials(ctx context.Context, name string, a runtime.Auth) error {
	type entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	host := a.Host
	if host == "docker.io" { // the key that container engines have for Docker's own registry
		host = "https://index.docker.io/v1/"
	}
	config, err := json.Marshal(map[string]map[string]entry{"auths": {host: {a.Username, a.Password}}})
	if err != nil {
		return err
	}
	secret := &core1.Secret{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{labelStore: hash(e.cfg.StoreID)}},
		Type:       core1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{core1.DockerConfigJsonKey: config},
	}
	secrets := func(request *rest.Request) *rest.Request {
		return request.Namespace(e.cfg.Namespace).Resource("secrets")
	}
	err = secrets(e.api().Post()).Body(secret).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) { // of an earlier create, perhaps with others: a patch would need the permission to read
		if err = secrets(e.api().Delete()).Name(name).Do(ctx).Error(); err == nil {
			err = secrets(e.api().Post()).Body(secret).Do(ctx).Error()
		}
	}
	if err == nil {
		e.credentials.Store(name, a)
	}
	return err
}
