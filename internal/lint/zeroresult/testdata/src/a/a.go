package a

import (
	"errors"

	"github.com/samber/mo"
	other "github.com/samber/mo"
)

type own = mo.Result[string]

// Result only shares the name.
type Result[T any] struct{ v T }

func named() (r mo.Result[int]) { // want `a named mo.Result is Ok until it is assigned`
	return
}

func renamedImport() (r other.Result[int]) { // want `a named mo.Result`
	return mo.Ok(1)
}

func blank() (_ mo.Result[int], err error) { // want `a named mo.Result`
	return mo.Ok(1), nil
}

func throughAlias() (r own) { // want `a named mo.Result`
	return mo.Ok("")
}

var literalFunc = func() (r mo.Result[bool]) { // want `a named mo.Result`
	return mo.Ok(true)
}

type contract interface {
	Run() (r mo.Result[int]) // want `a named mo.Result`
}

func literal() mo.Result[int] {
	return mo.Result[int]{} // want `a literal mo.Result is Ok`
}

func pointer() *mo.Result[int] {
	return &mo.Result[int]{} // want `a literal mo.Result is Ok`
}

func declared(fail bool) mo.Result[int] {
	var r mo.Result[int] // want `declared without a value is Ok`
	if fail {
		r = mo.Err[int](errors.New("no"))
	}
	return r
}

var (
	pkg mo.Result[int] // want `declared without a value`
)

func generic[T any]() mo.Result[T] {
	return *new(mo.Result[T]) // want `new gives a mo.Result that is Ok`
}

func meant() mo.Result[int] {
	var r mo.Result[int] //zeroresult:allow shows what the comment does
	return r
}

func meantAbove() mo.Result[int] {
	//zeroresult:allow shows what the comment does
	return mo.Result[int]{}
}

func noReason() mo.Result[int] {
	//zeroresult:allow
	return mo.Result[int]{} // want `a literal mo.Result is Ok`
}

func fine(r mo.Result[int]) mo.Result[int] {
	var initialised = mo.Ok(1)
	var typed mo.Result[int] = mo.Ok(2)
	var list []mo.Result[int]
	var mine Result[int]
	var option mo.Option[int]
	_, _, _, _, _ = initialised, typed, list, mine, option
	p := new(int)
	_ = p
	return r
}

func fineOther() (n int, r Result[int]) { return }
