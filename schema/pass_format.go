package schema

import "encoding/base64"

// sure holds, by format, of texts that surely have it: most of those that come. The others are put to the format itself,
// whose library wants a string of its own. Only the soundness of these matters.
var sure = map[string]func([]byte) bool{
	"date":      sureDate,
	"time":      sureTime,
	"date-time": func(s []byte) bool { return len(s) > 11 && sureDate(s[:10]) && s[10] == 'T' && sureTime(s[11:]) },
	"uuid":      sureUUID,
	"base64":    sureBase64,
}

// pair reads two digits, -1 where there are none.
func pair(s []byte) int {
	if '0' <= s[0] && s[0] <= '9' && '0' <= s[1] && s[1] <= '9' {
		return int(s[0]-'0')*10 + int(s[1]-'0')
	}
	return -1
}

func within60(s []byte) bool { v := pair(s); return v >= 0 && v < 60 }

// sureDate leaves the ends of the months to others.
func sureDate(s []byte) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' || pair(s) < 0 || pair(s[2:]) < 0 {
		return false
	}
	month, day := pair(s[5:]), pair(s[8:])
	return month >= 1 && month <= 12 && day >= 1 && day <= 28
}

func sureTime(s []byte) bool {
	if len(s) < 9 || s[2] != ':' || s[5] != ':' || !within60(s[3:]) || !within60(s[6:]) {
		return false
	}
	if hour := pair(s); hour < 0 || hour > 23 {
		return false
	}
	s = s[8:]
	if s[0] == '.' {
		end := digitsEnd(s, 1)
		if end < 2 || end > 10 || end == len(s) {
			return false
		}
		s = s[end:]
	}
	if len(s) == 1 {
		return s[0] == 'Z'
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && pair(s[1:]) >= 0 && pair(s[1:]) <= 14 && s[3] == ':' && within60(s[4:])
}

func sureUUID(s []byte) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

var strict64 = base64.StdEncoding.Strict()

// sureBase64 decodes piece by piece, padding in the last of them only.
func sureBase64(s []byte) bool {
	var piece [384]byte
	if len(s)%4 != 0 {
		return false
	}
	for len(s) > 0 {
		n := min(len(s), 512)
		for _, c := range s[:n] {
			if c == '\r' || c == '\n' || c == '=' && n < len(s) {
				return false
			}
		}
		if _, err := strict64.Decode(piece[:], s[:n]); err != nil {
			return false
		}
		s = s[n:]
	}
	return true
}
