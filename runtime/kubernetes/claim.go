package kubernetes

import (
	"context"
	"errors"
	"fmt"

	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth/runtime"
)

// claims is the resource of persistent volume claims.
const claims = "persistentvolumeclaims"

// EnsureClaim creates a claim of a StorageClass that requests a number of bytes, unless it exists. It returns why the
// claim cannot be used yet; empty: it is bound. A claim of another store is an error. No pod owns it: it stays until RemoveClaim.
func (e *Engine) EnsureClaim(ctx context.Context, name, class string, bytes int64) (waits string, err error) {
	err = e.do(ctx, quick, "create", "claim "+name, func(ctx context.Context) error {
		claim, err := e.claim(ctx, name)
		if notFound(err) {
			claim = e.newClaim(name, class, bytes)
			err = e.api().Post().Namespace(e.cfg.Namespace).Resource(claims).Body(claim).Do(ctx).Into(claim)
		}
		switch {
		case err != nil:
			return err
		case claim.DeletionTimestamp != nil:
			waits = "it is being deleted"
		case claim.Status.Phase != core1.ClaimBound:
			waits = "it is not bound" + e.lastEvent(ctx, "involvedObject.uid="+string(claim.UID))
		}
		return nil
	})
	if errors.Is(err, runtime.ErrNoRoom) { // of a quota, which has room again once others need less
		return err.Error(), nil
	}
	return waits, err
}

func (e *Engine) newClaim(name, class string, bytes int64) *core1.PersistentVolumeClaim {
	return &core1.PersistentVolumeClaim{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{labelStore: hash(e.cfg.StoreID), labelVolume: name}},
		Spec: core1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []core1.PersistentVolumeAccessMode{core1.ReadWriteMany},
			Resources: core1.VolumeResourceRequirements{
				Requests: core1.ResourceList{core1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)},
			},
		},
	}
}

// claim returns a claim of this store. The error for one of another is errNotOurs.
func (e *Engine) claim(ctx context.Context, name string) (*core1.PersistentVolumeClaim, error) {
	claim := &core1.PersistentVolumeClaim{}
	err := e.api().Get().Namespace(e.cfg.Namespace).Resource(claims).Name(name).Do(ctx).Into(claim)
	if err == nil && claim.Labels[labelStore] != hash(e.cfg.StoreID) {
		err = fmt.Errorf("%w: claim %s belongs to another store, or to nobody", runtime.ErrUnmanaged, name)
	}
	return claim, classify(err)
}

// ResizeClaim raises the bytes that a claim requests. Kubernetes has no way to lower them.
func (e *Engine) ResizeClaim(ctx context.Context, name string, bytes int64) error {
	return e.do(ctx, quick, "resize", "claim "+name, func(ctx context.Context) error {
		claim, err := e.claim(ctx, name)
		if err != nil || claim.Spec.Resources.Requests.Storage().Value() >= bytes {
			return err
		}
		body := fmt.Appendf(nil, `{"metadata": {"uid": %q}, "spec": {"resources": {"requests": {"storage": %q}}}}`, claim.UID,
			resource.NewQuantity(bytes, resource.BinarySI))
		return e.api().Patch(types.MergePatchType).Namespace(e.cfg.Namespace).Resource(claims).Name(name).Body(body).Do(ctx).Error()
	})
}

// RemoveClaim requests the deletion of a claim. It leaves one of another store alone.
func (e *Engine) RemoveClaim(ctx context.Context, name string) error {
	return e.do(ctx, quick, "remove", "claim "+name, func(ctx context.Context) error {
		claim, err := e.claim(ctx, name)
		if err == nil {
			options := &meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &claim.UID}}
			err = e.api().Delete().Namespace(e.cfg.Namespace).Resource(claims).Name(name).Body(options).Do(ctx).Error()
		}
		if notFound(err) || apierrors.IsNotFound(err) || errors.Is(err, runtime.ErrUnmanaged) {
			return nil
		}
		return err
	})
}
