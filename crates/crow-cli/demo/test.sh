# Checks the prices; run with: sh test.sh
. ./price.sh
failed=0

check() { # WHAT EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then
        echo "ok      $1"
    else
        echo "FAILED  $1: expected $2, got $3"
        failed=1
    fi
}

check "three pens, no discount" 300 "$(total 3 100 0)"
check "ten books, ten percent off" 9000 "$(total 10 1000 10)"
exit $failed
