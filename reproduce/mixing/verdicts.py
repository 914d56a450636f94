"""Paper 004: whether each claim holds, with the numbers of the page in ``docs``."""

from collections.abc import Mapping

__all__ = ["VERDICTS"]

VERDICTS: Mapping[str, str] = {
    "headline": (
        "holds in part: at epsilon 3 AdaMix is 108% above the model without privacy (weak "
        "penalty 72%), where the paper has 68 to 92%; at epsilon 1 it is 149%. Ours: 32% and "
        "79%. Other data. One draw; ten of an earlier version of the code had 85, 56 and 116%, "
        "ours 35 and 68%."
    ),
    "5": (
        "fails here with both penalties: the paper finds adaptive clipping the key part and "
        "both parts together best. With its penalty clipping changes the error by -1% and both "
        "by +24% (median). With the weak one (error in %, NGD / + clipping / + both): digits 6.4 "
        "/ 7.1 / 12.4, MNIST 16.0 / 16.1 / 28.6, USPS 11.4 / 12.1 / 17.2, Office GoogLeNet 6.0 / "
        "5.2 / 5.4, Office SURF 44.8 / 45.0 / 52.4, Caltech SURF 54.3 / 54.6 / 61.4: clipping "
        "helps on one of six, both together on the same one. Five draws."
    ),
    "6": (
        "holds in part: a random subspace leaves out more on 6 of 6 data sets, but at least "
        "twice as much on 0 of 6 by row and on 3 of 6 by sum. One draw; the same numbers of "
        "data sets in three of an earlier version of the code."
    ),
    "7": (
        "holds in part: with the paper's penalty 90 and 95 have the least mean error over data "
        "sets (28.0%), but any percentile from 50 on is within 0.2 points. With the weak one 95 "
        "is best on the three sets of digits (6.9 against 11.1% with 25 on those of "
        "scikit-learn), and 25 or 50 on the two SURF sets (41.8 against 45.0% with 90, 53.2 "
        "against 54.6%); the paper finds 75 better on two of its six. Five draws."
    ),
    "8": (
        "holds in part: with the weak penalty larger sigma is better on the three sets of digits "
        "(error in % at sigma 5, 10, 20, 40: scikit-learn 13.4, 10.3, 7.0, 5.6; MNIST 30.3, "
        "22.7, 16.6, 15.9; USPS 18.6, 15.0, 11.4, 10.2), not on the three of photographs "
        "(Office GoogLeNet 5.4, 5.2, 5.4, 6.3; Office SURF 51.0, 45.4, 43.3, 58.0; Caltech SURF "
        "63.6, 57.6, 56.7, 67.2), where 40 is worst. With the paper's penalty it fails here: 10 "
        "to 20 is best. Ten draws; rate and penalty are fixed, the paper takes the best of three "
        "rates on test data."
    ),
    "9": (
        "holds in part: AdaMix is better than NoisyGD at the smallest epsilon (15.5 against "
        "24.4% at 0.25, 11.2 against 10.7% at 1) and level with it at 8 (9.9 against 9.9%); the "
        "attack gains little under privacy (area 0.557 at most, 0.623 without). Three draws; "
        "ten of an earlier version of the code had 10.3 against 11.1% at epsilon 1 and 8.6 "
        "against 8.7% at 8."
    ),
    "10": (
        "holds in part: AdaMix is better than NoisyGD at small epsilon (35.8 against 42.0% at "
        "0.25, 21.0 against 24.0% at 1) and level with it at 8 (19.2 against 18.6%); the attack "
        "gains little under privacy (area 0.572 at most, 0.649 without). One draw; ten of an "
        "earlier version of the code had 23.1 against 26.7% at epsilon 1 and 17.7 against 17.7% "
        "at 8."
    ),
    "11": (
        "holds in part: AdaMix is better than NoisyGD at small epsilon (32.2 against 47.2% at "
        "0.25, 23.8 against 24.0% at 1) and level with it at 8 (21.0 against 22.0%); the attack "
        "gains little under privacy (area 0.599 at most, 0.699 without). One draw; ten of an "
        "earlier version of the code had 23.5 against 25.7% at epsilon 1 and 19.5 against 19.7% "
        "at 8."
    ),
    "12": (
        "holds in part: AdaMix is better than NoisyGD at small epsilon (6.8 against 38.2% at "
        "0.25, 6.8 against 9.2% at 1) and level with it at 8 (5.8 against 6.0%); the attack "
        "gains little under privacy (area 0.563 at most, 0.704 without). Two draws; ten of an "
        "earlier version of the code had 5.4 against 6.4% at epsilon 1 and 5.3 against 5.7% at "
        "8."
    ),
    "13": (
        "holds in part: AdaMix is better than NoisyGD at small epsilon (65.6 against 84.0% at "
        "0.25, 65.6 against 73.6% at 1) and level with it at 8 (64.8 against 65.2%); the attack "
        "gains less under privacy (area 0.785 at most, ours at epsilon 8, 0.989 without). One "
        "draw; ten of an earlier version of the code had 63.4 against 69.0% at epsilon 1 and "
        "61.8 against 62.6% at 8."
    ),
    "14": (
        "cannot be told: the supplement compares NGD and AdaMix, which is what its caption calls "
        "the effect of public data, without a claim, and its main text is not at hand. Here rows "
        "lose more in AdaMix than in NoisyGD (median epsilon 2.52 against 1.89)."
    ),
    "15": (
        "cannot be told: the supplement compares NGD and AdaMix, which is what its caption calls "
        "the effect of public data, without a claim, and its main text is not at hand. Here rows "
        "lose more in AdaMix than in NoisyGD (median epsilon 2.33 against 2.02)."
    ),
    "16": (
        "cannot be told: the supplement compares NGD and AdaMix, which is what its caption calls "
        "the effect of public data, without a claim, and its main text is not at hand. Here rows "
        "lose more in AdaMix than in NoisyGD (median epsilon 2.53 against 2.26)."
    ),
    "17": (
        "cannot be told: the supplement compares NGD and AdaMix, which is what its caption calls "
        "the effect of public data, without a claim, and its main text is not at hand. Here rows "
        "lose more in AdaMix than in NoisyGD (median epsilon 2.66 against 1.58)."
    ),
    "18": (
        "cannot be told: the supplement compares NGD and AdaMix, which is what its caption calls "
        "the effect of public data, without a claim, and its main text is not at hand. Here rows "
        "lose more in AdaMix than in NoisyGD (median epsilon 2.86 against 2.69)."
    ),
    "19": (
        "fails here: the supplement says that the effect of the start is the same on all data "
        "sets. At its epsilon 3 there is hardly one (AdaMix from zero / public rows / names: good "
        "or bad 22.8 / 22.9 / 22.6%, four kinds 7.2 / 7.2 / 7.2%, eight classes 30.6 / 30.6 / "
        "30.2%): the penalty leaves (1 - 0.02)^206 = 0.016 of the start. At epsilon 0.25 AdaMix "
        "is best from names with eight classes (35.8 against 44.7% from zero), and from zero on "
        "the two other tasks (9.4 against 14.5% from names with four kinds). Another encoder, "
        "and texts; five draws."
    ),
}
