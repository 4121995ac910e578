// Package bench measures what governance costs, beside things everybody can measure: encoding/json reading the same bytes
// and SHA-256 over them, in the same run on the same machine. Times do not carry from one machine to another; ratios do,
// about as well as a factor of 1.5.
//
//	make bench
//
// prints the usual benchmark lines with allocations, then a table of ratios, and then what ./bench/figures finds of the
// figures that are promised. Nothing here fails for being slow.
package bench
