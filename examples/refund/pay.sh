# Books a payment: pay KIND FILE, with {"amount":…,"orderId":…} on the standard input and a receipt on the standard output.
set -eu
umask 0 # as root each call has an id of its own, and the next one writes the same books
read -r call || [ -n "$call" ]
field() { printf '%s' "$call" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
order=$(field orderId) amount=$(field amount)
printf '%s\t%s\t%s\n' "$1" "$order" "$amount" >> "$2"
printf '{"receipt":"%s/%s/%s"}' "$1" "$order" "$(wc -l < "$2" | tr -d ' ')"
