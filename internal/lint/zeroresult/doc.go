// Package zeroresult is a vet analyzer against results that say Ok by accident. The zero value of mo.Result is Ok: a
// function that declares its result by name and returns early, or hands back a result nobody filled, reports success for
// work that never happened. The analyzer reports
//
//	func f() (r mo.Result[T])   a named result, which is Ok until somebody assigns it
//	mo.Result[T]{}              a literal, which is always Ok with a zero T
//	var r mo.Result[T]          a declaration without a value
//	new(mo.Result[T])           the same by pointer
//
// A line that needs one on purpose says so, with the reason, in a comment at its end or on the line above:
//
//	var r mo.Result[int] //zeroresult:allow the test is about the zero value
package zeroresult
