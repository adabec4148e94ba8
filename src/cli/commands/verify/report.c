/* What verify prints: a table of marks for each kernel, the first difference, a summary; or JSON. */
#include "verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *format_name(int format) { return bsm_format_get(format)->name; }

static const char *check_sentence(enum verify_check check)
{
    switch (check) {
    case VERIFY_CHECK_STATUS: return "the product was refused";
    case VERIFY_CHECK_EXACT: return "the exact sum, rounded to fp32";
    case VERIFY_CHECK_BOUND: return "the exact sum";
    case VERIFY_CHECK_ORDER: return "the sum in the portable order";
    default: return "what lay between the rows of D, where nobody may write";
    }
}

struct totals {
    int64_t served, passed, cases, refused, never;
    double worst;
    int worst_a, worst_b;
    const struct verify_result *first, *refusing, *first_never;
    int first_a, first_b, never_a, never_b;
};

static void count_refusals(struct totals *t, const struct verify_result *result, int a, int b)
{
    t->refused += result->refused;
    if (result->refused > 0 && t->refusing == NULL) t->refusing = result;
    if (!verify_never_ran(result)) return;
    if (t->never++ == 0) t->first_never = result, t->never_a = a, t->never_b = b;
}

static struct totals count(const struct verify_report *report, int kernel)
{
    struct totals t = { 0 };
    for (int a = 1; a <= VERIFY_FORMATS; a++)
        for (int b = 1; b <= VERIFY_FORMATS; b++) {
            const struct verify_result *result = &report->results[kernel][a - 1][b - 1];
            if (!result->served || result->cases + result->refused == 0) continue;
            t.served++, t.cases += result->cases;
            count_refusals(&t, result, a, b);
            if (result->cases > 0 && result->failures == 0) t.passed++;
            else if (result->failures > 0 && t.first == NULL) t.first = result, t.first_a = a, t.first_b = b;
            if (!(result->worst <= t.worst)) t.worst = result->worst, t.worst_a = a, t.worst_b = b;
        }
    return t;
}

bool verify_report_differs(const struct verify_report *report)
{
    for (int i = 0; i < report->kernels; i++) {
        const struct totals t = count(report, i);
        if (t.passed != t.served) return true;
    }
    return false;
}

/* The command that runs the pair again, on one kernel, with the same data. */
static void repeat_command(const struct cli *cli, const struct verify_report *report, int kernel, int a, int b,
                           char *text, size_t bytes)
{
    snprintf(text, bytes, "blockscale verify --pair %s:%s --kernel '%s'%s%s --seed %llu --threads %d%s", format_name(a),
             format_name(b), bsm_kernel_name(report->kernel[kernel]), report->gpu != NULL ? " --device " : "",
             report->gpu != NULL ? bsm_backend_name((int)bsm_context_backend(report->gpu)) : "",
             (unsigned long long)cli->seed, bsm_context_threads(cli->context), report->quick ? " --quick" : "");
}

/* Text ------------------------------------------------------------------------------------------------------------- */

static bool coloured(void)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");     /* no-color.org */
    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0')
           && (term == NULL || strcmp(term, "dumb") != 0);
}

static const char *mark(const struct verify_result *result, bool colour)
{
    if (verify_never_ran(result)) return colour ? "\033[1;33m○\033[0m" : "○";
    if (!result->served || result->cases == 0) return colour ? "\033[2m·\033[0m" : "·";
    if (result->failures == 0) return colour ? "\033[32m✓\033[0m" : "✓";
    return colour ? "\033[1;31m✗\033[0m" : "✗";
}

static void print_marks(const struct verify_report *report, int kernel, bool colour)
{
    printf("    A \\ B          ");
    for (int b = 1; b <= VERIFY_FORMATS; b++) printf("%3d", b);
    printf("\n");
    for (int a = 1; a <= VERIFY_FORMATS; a++) {
        printf(" %2d %-15s", a, format_name(a));
        for (int b = 1; b <= VERIFY_FORMATS; b++) printf("  %s", mark(&report->results[kernel][a - 1][b - 1], colour));
        printf("\n");
    }
}

static void print_difference(const struct cli *cli, const struct verify_report *report, int kernel,
                             const struct totals *t)
{
    const struct verify_failure *failure = &t->first->first;
    const struct difference *first = &failure->first;
    char command[512];
    repeat_command(cli, report, kernel, t->first_a, t->first_b, command, sizeof command);
    printf("  first difference: %s x %s on %s, case \"%s\", M = %lld, N = %lld, K = %lld, seed %llu\n",
           format_name(t->first_a), format_name(t->first_b), bsm_kernel_name(report->kernel[kernel]),
           verify_kind_name(failure->what.kind), (long long)failure->what.m, (long long)failure->what.n,
           (long long)failure->what.k, (unsigned long long)cli->seed);
    if (failure->check == VERIFY_CHECK_STATUS) {
        printf("    %s: %s\n", check_sentence(failure->check), failure->sentence);
    } else {
        printf("    D[%lld,%lld] is %.9g (0x%08x) and must be %.9g (0x%08x): %s\n", (long long)first->i,
               (long long)first->j, first->got, (unsigned)first->got_bits, first->want, (unsigned)first->want_bits,
               check_sentence(failure->check));
        if (first->allowed > 0)
            printf("    off by %.3g, and %.3g is allowed\n", fabs(first->got - first->want), first->allowed);
        printf("    %lld of %lld elements differ; %lld of %lld cases of this pair do\n", (long long)first->count,
               (long long)(failure->what.m * failure->what.n), (long long)t->first->failures,
               (long long)t->first->cases);
    }
    printf("    again: %s\n", command);
}

static void print_refusals(const struct totals *t)
{
    char text[2048];
    if (t->refused > 0) {
        snprintf(text, sizeof text, "ran %lld of %lld products; the others break a rule of the kernel, the first: %s",
                 (long long)t->cases, (long long)(t->cases + t->refused), t->refusing->refusal);
        printf("  ");
        cli_print_wrapped(stdout, text, 2, 4);
    }
    if (t->never > 0) {
        snprintf(text, sizeof text, "%lld pair%s never ran, the first: %s x %s: %s", (long long)t->never,
                 t->never == 1 ? "" : "s", format_name(t->never_a), format_name(t->never_b), t->first_never->refusal);
        printf("  ");
        cli_print_wrapped(stdout, text, 2, 4);
    }
}

static void print_legend(bool colour, bool never)
{
    printf("%s agrees  %s differs  %s not served", colour ? "\033[32m✓\033[0m" : "✓",
           colour ? "\033[1;31m✗\033[0m" : "✗", colour ? "\033[2m·\033[0m" : "·");
    if (never) printf("  %s never ran", colour ? "\033[1;33m○\033[0m" : "○");
    printf("\n");
}

void verify_report_text(const struct cli *cli, const struct verify_report *report)
{
    const bool colour = coloured();
    int64_t served = 0, passed = 0, cases = 0, refused = 0, never = 0;
    for (int i = 0; i < report->kernels; i++) {
        const struct totals t = count(report, i);
        printf("kernel %s\n", bsm_kernel_name(report->kernel[i]));
        if (report->only_a == BSM_FORMAT_NONE) print_marks(report, i, colour);
        else printf("  %s x %s  %s\n", format_name((int)report->only_a), format_name((int)report->only_b),
                    mark(&report->results[i][report->only_a - 1][report->only_b - 1], colour));
        if (t.worst_a != 0)
            printf("  worst error %.3g eps x sum |a||b|  (%s x %s; eps = 2^-24)\n", t.worst, format_name(t.worst_a),
                   format_name(t.worst_b));
        print_refusals(&t);
        if (t.first != NULL) print_difference(cli, report, i, &t);
        printf("\n");
        served += t.served, passed += t.passed, cases += t.cases, refused += t.refused, never += t.never;
    }
    print_legend(colour, never > 0);
    printf("%lld of %lld pairs agree on %d kernel%s: %lld products that ran on the kernel named", (long long)passed,
           (long long)served, report->kernels, report->kernels == 1 ? "" : "s", (long long)cases);
    if (refused > 0) printf(", %lld refused by rules of kernels", (long long)refused);
    if (never > 0) printf(", %lld pair%s never ran", (long long)never, never == 1 ? "" : "s");
    printf(", seed %llu, %.1f s%s\n", (unsigned long long)cli->seed, report->seconds,
           report->quick ? " (--quick)" : "");
}

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void json_difference(struct cli_json *json, const struct cli *cli, const struct verify_report *report,
                            int kernel, int a, int b)
{
    const struct verify_failure *failure = &report->results[kernel][a - 1][b - 1].first;
    char command[512], bits[16];
    repeat_command(cli, report, kernel, a, b, command, sizeof command);
    cli_json_object(json, "first_difference");
    cli_json_text(json, "case", verify_kind_name(failure->what.kind));
    cli_json_integer(json, "m", failure->what.m);
    cli_json_integer(json, "n", failure->what.n);
    cli_json_integer(json, "k", failure->what.k);
    cli_json_text(json, "compared_with", check_sentence(failure->check));
    if (failure->check == VERIFY_CHECK_STATUS) {
        cli_json_text(json, "sentence", failure->sentence);
    } else {
        cli_json_integer(json, "i", failure->first.i);
        cli_json_integer(json, "j", failure->first.j);
        cli_json_number(json, "got", failure->first.got);
        snprintf(bits, sizeof bits, "0x%08x", (unsigned)failure->first.got_bits);
        cli_json_text(json, "got_bits", bits);
        cli_json_number(json, "want", failure->first.want);
        snprintf(bits, sizeof bits, "0x%08x", (unsigned)failure->first.want_bits);
        cli_json_text(json, "want_bits", bits);
        cli_json_number(json, "allowed", failure->first.allowed);
        cli_json_integer(json, "elements_that_differ", failure->first.count);
    }
    cli_json_text(json, "again", command);
    cli_json_end(json);
}

static void json_pair(struct cli_json *json, const struct cli *cli, const struct verify_report *report, int kernel,
                      int a, int b)
{
    const struct verify_result *result = &report->results[kernel][a - 1][b - 1];
    cli_json_object(json, NULL);
    cli_json_text(json, "a", format_name(a));
    cli_json_text(json, "b", format_name(b));
    cli_json_boolean(json, "served", result->served);
    cli_json_integer(json, "cases", result->cases);
    cli_json_integer(json, "failures", result->failures);
    cli_json_integer(json, "refused", result->refused);
    if (result->refused > 0) cli_json_text(json, "refusal", result->refusal);
    cli_json_number(json, "worst_error", result->worst);
    if (result->failures > 0) json_difference(json, cli, report, kernel, a, b);
    cli_json_end(json);
}

void verify_report_json(const struct cli *cli, const struct verify_report *report)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_boolean(&json, "agrees", !verify_report_differs(report));
    cli_json_integer(&json, "seed", (int64_t)cli->seed);
    cli_json_integer(&json, "threads", bsm_context_threads(cli->context));
    cli_json_boolean(&json, "quick", report->quick);
    cli_json_number(&json, "seconds", report->seconds);
    cli_json_text(&json, "worst_error_unit", "2^-24 * sum |a||b|");
    cli_json_array(&json, "kernels");
    for (int i = 0; i < report->kernels; i++) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "kernel", bsm_kernel_name(report->kernel[i]));
        cli_json_array(&json, "pairs");
        for (int a = 1; a <= VERIFY_FORMATS; a++)
            for (int b = 1; b <= VERIFY_FORMATS; b++)
                if (report->only_a == BSM_FORMAT_NONE || ((int)report->only_a == a && (int)report->only_b == b))
                    json_pair(&json, cli, report, i, a, b);
        cli_json_end(&json);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}
