package v1

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full fills every field, so that the test fails for a field that Clone forgets.
func full(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *PortSet:
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

func requireClone[V interface{ Clone() V }](t *testing.T) {
	t.Helper()
	var v V
	full(reflect.ValueOf(&v).Elem())
	c := v.Clone()
	require.Equal(t, v, c)
	require.Empty(t, shared(fmt.Sprintf("%T", v), reflect.ValueOf(v), reflect.ValueOf(c)), "shared with its clone")
	var zero V
	require.Equal(t, zero, zero.Clone())
}

func TestCloneIsDeep(t *testing.T) {
	requireClone[ContainerSpec](t)
	requireClone[ContainerStatus](t)
	requireClone[VolumeSpec](t)
	requireClone[VolumeStatus](t)
	requireClone[PoolSpec](t)
	requireClone[PoolStatus](t)
	requireClone[TokenSpec](t)
	requireClone[TokenStatus](t)
	requireClone[BackupSpec](t)
	requireClone[BackupStatus](t)
	requireClone[PolicySpec](t)
	requireClone[PolicyStatus](t)
	requireClone[RestoreSpec](t)
	requireClone[RestoreStatus](t)
}
