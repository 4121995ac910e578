// Package mo stands in for the library: the analyzer looks at the path and the name of the type only.
package mo

type Result[T any] struct {
	value T
	err   error
}

type Option[T any] struct{ value T }

func Ok[T any](v T) Result[T]        { return Result[T]{value: v} }
func Err[T any](err error) Result[T] { return Result[T]{err: err} }
