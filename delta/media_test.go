package delta

import (
	"mime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSniff(t *testing.T) {
	for _, c := range []struct{ data, want, reason string }{
		{"\x89PNG\r\n\x1a\n\x00", "image/png", "its signature"},
		{"\xff\xd8\xff\xe0", "image/jpeg", "start of image"},
		{"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp", "a RIFF of pictures"},
		{"RIFF\x10\x00\x00\x00WAVEfmt ", "audio/wav", "a RIFF of sound"},
		{"RIFF....AVI ", "text/plain", "characters, whatever they say"},
		{"BM\x10\x00\x00\x00\x00\x00\x00\x00", "image/bmp", "with its reserved zeros"},
		{"BM is short", "text/plain", "a text may begin so"},
		{"\x00\x00\x00\x20ftypM4A \x00", "audio/mp4", "a container of sound"},
		{"\x00\x00\x00\x20ftypavif\x00", "image/avif", "before the container it is made of"},
		{"ID3\x04\x00\x00", "audio/mpeg", "a tag in front of the frames"},
		{"\xff\xfb\x90\x64", "audio/mpeg", "MPEG 1, layer III"},
		{"\xff\xf1\x50\x80", "audio/aac", "ADTS"},
		{"\xff\xfeh\x00i\x00", "text/plain", "UTF-16, not a frame of layer I"},
		{"\xff\xef\xff\xff", "", "no version of MPEG"},
		{"%PDF-1.7\n", "application/pdf", "also where all of it is text"},
		{"PK\x03\x04\x00", "application/zip", "a local file header"},
		{"GIF89a is a format", "text/plain", "a text about it"},
		{"a,b\n1,2\n", "text/plain", "text"},
		{"\x1b[31mred\x1b[0m", "text/plain", "a log with colours"},
		{"\x00\x01\x02\x03", "", "nothing that is known"},
		{"\xff", "", "too short to tell"},
	} {
		assert.Equal(t, c.want, sniff([]byte(c.data)), "%q: %s", c.data, c.reason)
	}
}

// What is recorded as an image or audio was recognised as that very type.
func FuzzMediaType(f *testing.F) {
	f.Add("image/png", []byte("\x89PNG\r\n\x1a\n"))
	f.Add("audio/mp3", []byte("ID3"))
	f.Add("text/plain; charset=utf-8", []byte("x"))
	f.Add("", []byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, declared string, data []byte) {
		kind, err := mediaType(declared, data)
		if err != nil {
			return
		}
		name, _, err := mime.ParseMediaType(kind)
		require.NoError(t, err, kind)
		if top, _, _ := strings.Cut(name, "/"); top == "audio" || top == "image" && name != "image/svg+xml" {
			assert.Equal(t, plainName(name), sniff(data))
		}
	})
}
