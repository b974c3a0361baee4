package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// full fills every field, so that a clone that forgets one is seen.
func full(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *v1.PortSet:
		value.Add(7)
		return
	case *time.Time:
		*value = time.Unix(1, 0)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			full(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		full(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem())
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		full(key)
		full(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// shared lists the fields in which a and b hold the same memory.
func shared(path string, a, b reflect.Value) (list []string) {
	if _, ok := a.Interface().(time.Time); ok {
		return nil // cannot be changed through the pointer that it holds
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				list = append(list, shared(path+"."+f.Name, a.Field(i), b.Field(i))...)
			} else if a.Field(i).Pointer() == b.Field(i).Pointer() {
				list = append(list, path+"."+f.Name)
			}
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			list = append(list, path)
		}
		if a.Kind() == reflect.Slice {
			list = append(list, shared(path+"[0]", a.Index(0), b.Index(0))...)
		}
	}
	return list
}

func requireClone[V any](t *testing.T, clone func(V) V) {
	var v V
	full(reflect.ValueOf(&v).Elem())
	c := clone(v)
	require.Equal(t, v, c)
	require.Empty(t, shared(fmt.Sprintf("%T", v), reflect.ValueOf(v), reflect.ValueOf(c)), "shared with its clone")
	var zero V
	require.Equal(t, zero, clone(zero))
}

func TestClonesShareNothing(t *testing.T) {
	requireClone(t, cloneContainerSpec)
	requireClone(t, cloneContainerStatus)
	requireClone(t, cloneVolumeSpec)
	requireClone(t, cloneVolumeStatus)
	requireClone(t, clonePoolSpec)
	requireClone(t, clonePoolStatus)
	requireClone(t, cloneTokenSpec)
	requireClone(t, cloneTokenStatus)
}

func TestWhatIsReadIsTheReadersOwn(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.Create(tx, "a", v1.ContainerSpec{Env: map[string]string{"A": "1"}})
	}))
	for range 3 {
		require.NoError(t, s.View(func(tx *Tx) error {
			o, err := Containers.Get(tx, "a")
			require.NoError(t, err)
			require.Equal(t, "1", o.Spec.Env["A"])
			o.Spec.Env["A"] = "2"
			list, err := Containers.List(tx)
			require.NoError(t, err)
			require.Equal(t, "1", list[0].Spec.Env["A"])
			list[0].Spec.Env["A"] = "3"
			return nil
		}))
	}
	require.Len(t, s.cache.records, 1)
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "a") }))
	require.Empty(t, s.cache.records)
}
