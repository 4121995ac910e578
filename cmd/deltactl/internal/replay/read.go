package replay

import (
	"context"
	"errors"
	"io"
)

// Rows calls do for every row of the recording at path, in order, until it fails or ctx ends; "-" is stdin. Errors name
// file and line.
func Rows(ctx context.Context, stdin io.Reader, path string, do func(Row) error) (err error) {
	s, err := openSource(path, stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.rows(ctx, do)
}
